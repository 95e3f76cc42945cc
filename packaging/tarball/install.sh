#!/bin/sh
# Installs Draftscope from the folder that this script lies in.
#
#   ./install.sh [--prefix FOLDER] [--no-warm-up]
#
# Without --prefix it goes into ~/.local, for you alone, or, run as root, into /usr/local. To take it off again:
# FOLDER/lib/draftscope/uninstall.sh. It also runs without being installed: program/draftscope.
set -eu
umask 022

id=io.github.draftscope.Draftscope
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

fail() {
    echo "$*" >&2
    exit 1
}

prefix=
warm_up=yes
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -gt 1 ] || fail "--prefix needs a folder."; prefix=$2; shift 2 ;;
        --prefix=*) prefix=${1#--prefix=}; shift ;;
        --no-warm-up) warm_up=no; shift ;;
        -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) fail "$1 is not understood; see $0 --help" ;;
    esac
done
if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?is not set; name a folder with --prefix}/.local; fi
fi
[ -x "$here/program/draftscope" ] || fail "There is no program beside this script; unpack the whole archive again."

mkdir -p -- "$prefix" || fail "$prefix cannot be made; name another folder with --prefix."
prefix=$(CDPATH='' cd -- "$prefix" && pwd)
case $prefix in
    *"
"*) fail "The folder's name has a line break; name another one with --prefix." ;;
esac
program=$prefix/lib/draftscope
list=$program/installed-files
if [ -e "$program" ] && [ ! -f "$list" ]; then
    fail "$program is there and was not installed by this script; move it away or name another folder with --prefix."
fi

# What is there runs until the new one is whole.
new=$prefix/lib/.draftscope-new.$$
trap 'rm -rf -- "$new"' EXIT
trap 'exit 130' INT TERM
mkdir -p -- "$prefix/lib"
cp -R -- "$here/program" "$new"
cp -- "$here/uninstall.sh" "$new/uninstall.sh"
: >"$new/installed-files"
if [ -f "$list" ]; then sh "$program/uninstall.sh" --quiet; fi
mv -- "$new" "$program"

own() { # note a file for uninstall.sh
    printf '%s\n' "$1" >>"$list"
}

mkdir -p -- "$prefix/bin"
for name in draftscope draftscope-cli; do
    ln -sf "../lib/draftscope/$name" "$prefix/bin/$name"
    own "bin/$name"
done
(cd "$here/share" && find . -type f | LC_ALL=C sort) | while IFS= read -r file; do
    file=share/${file#./}
    mkdir -p -- "$prefix/$(dirname -- "$file")"
    cp -- "$here/$file" "$prefix/$file"
    own "$file"
done

# The menu starts the program by its full path, whatever the PATH is. In an Exec line % stands for arguments; within its
# quotes a backslash goes before " ` $ and \, and as the line is a string, each backslash is written twice.
path=$(printf '%s' "$prefix/bin/draftscope" | sed -e 's/[\\"`$]/\\\\&/g' -e 's/\\\\\\/\\\\\\\\/g' -e 's/%/%%/g')
replacement=$(printf '%s' "$path" | sed -e 's/[\\&|]/\\&/g')
sed "s|^Exec=draftscope|Exec=\"$replacement\"|" "$here/share/applications/$id.desktop" \
    >"$prefix/share/applications/$id.desktop"
sh "$program/uninstall.sh" --refresh

if ! found=$("$program/draftscope-cli" doctor 2>/dev/null </dev/null); then
    echo "Something that Draftscope needs is missing:"
    printf '%s\n' "$found" | grep -A 1 '✗' || true
fi
if [ "$warm_up" = yes ]; then
    echo "Compiling the kernels for this processor; this takes about a minute ..."
    mkdir -p -- "$program/kernels"
    NUMBA_CACHE_DIR=$program/kernels "$program/draftscope-cli" warm-up >/dev/null </dev/null ||
        echo "They could not be compiled now; the program will do that at its first start."
fi
echo "Draftscope is installed: $prefix/bin/draftscope. To take it off: $program/uninstall.sh"
case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "$prefix/bin is not on your PATH; the desktop's menu starts Draftscope all the same." ;;
esac
