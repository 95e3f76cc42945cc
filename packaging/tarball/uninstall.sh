#!/bin/sh
# Takes off the Draftscope that this script lies in. Settings, conversations and runs are yours and stay.
set -eu

program=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
prefix=$(dirname -- "$(dirname -- "$program")")
list=$program/installed-files

refresh() { # menus and file types are looked up in indexes
    if command -v update-desktop-database >/dev/null 2>&1; then
        update-desktop-database -q "$prefix/share/applications" 2>/dev/null || true
    fi
    if command -v update-mime-database >/dev/null 2>&1; then
        update-mime-database "$prefix/share/mime" >/dev/null 2>&1 || true
    fi
    if [ -f "$prefix/share/icons/hicolor/icon-theme.cache" ] && command -v gtk-update-icon-cache >/dev/null 2>&1; then
        gtk-update-icon-cache -qft "$prefix/share/icons/hicolor" 2>/dev/null || true
    fi
}

if [ "${1:-}" = --refresh ]; then
    refresh
    exit 0
fi
if [ ! -f "$list" ]; then
    echo "$program was not installed by install.sh; if it is not wanted, delete the folder." >&2
    exit 1
fi
while IFS= read -r file; do
    rm -f -- "$prefix/$file"
done <"$list"
refresh
# Indexes of nothing go too, and folders that are empty then, but none above the prefix.
if rmdir -- "$prefix/share/mime/packages" 2>/dev/null; then
    for name in XMLnamespaces aliases generic-icons globs globs2 icons magic mime.cache subclasses treemagic types version; do
        rm -f -- "$prefix/share/mime/$name"
    done
    rmdir -- "$prefix/share/mime/"* 2>/dev/null || true
fi
if [ "$(ls "$prefix/share/applications" 2>/dev/null)" = mimeinfo.cache ]; then
    rm -f -- "$prefix/share/applications/mimeinfo.cache"
fi
while IFS= read -r file; do
    folder=$(dirname -- "$file")
    while [ "$folder" != . ]; do
        rmdir -- "$prefix/$folder" 2>/dev/null || [ ! -e "$prefix/$folder" ] || break
        folder=$(dirname -- "$folder")
    done
done <"$list"
rm -rf -- "$program"
rmdir -- "$prefix/lib" 2>/dev/null || true
[ "${1:-}" = --quiet ] || echo "Draftscope is off. What you made with it is still there."
