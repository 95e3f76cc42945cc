#!/bin/sh
# Makes dist/draftscope-VERSION-ARCH.AppImage of the frozen program in build/bundle/draftscope.
#
#   APPIMAGETOOL=/path/to/appimagetool sh packaging/linux/appimage.sh VERSION
#
# appimagetool and the runtime that it puts in front are downloads of the AppImage project; the release workflow fetches
# both and checks their digests. With RUNTIME_FILE the runtime is that file instead of one that the tool downloads. BUNDLE
# and OUT name other folders than build/bundle/draftscope and dist.
set -eu
version=${1:?say the version}
tool=${APPIMAGETOOL:-appimagetool}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/../.."
id=io.github.draftscope.Draftscope
bundle=${BUNDLE:-build/bundle/draftscope}
out=${OUT:-dist}
[ -x "$bundle/draftscope" ] || { echo "There is no $bundle; make it with: make bundle" >&2; exit 1; }

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
tree="$staging/Draftscope.AppDir"
mkdir -p "$tree/usr/lib" "$tree/usr/share/applications" "$tree/usr/share/metainfo" "$tree/usr/share/mime/packages" \
    "$tree/usr/share/icons"
cp -R "$bundle" "$tree/usr/lib/draftscope"
cp -R packaging/icons/hicolor "$tree/usr/share/icons/"
cp "packaging/linux/$id.desktop" "$tree/usr/share/applications/"
cp "packaging/linux/$id.metainfo.xml" "$tree/usr/share/metainfo/$id.metainfo.xml"
cp "packaging/linux/$id.mime.xml" "$tree/usr/share/mime/packages/$id.xml"
ln -s "usr/share/applications/$id.desktop" "$tree/$id.desktop"
ln -s "usr/share/icons/hicolor/256x256/apps/$id.png" "$tree/$id.png"
ln -s "$id.png" "$tree/.DirIcon"
# One file holds both programs: `Draftscope.AppImage --cli generate demo …` is draftscope-cli.
cat >"$tree/AppRun" <<'RUN'
#!/bin/sh
here=$(dirname -- "$(readlink -f -- "$0")")
if [ "${1:-}" = --cli ]; then
    shift
    exec "$here/usr/lib/draftscope/draftscope-cli" "$@"
fi
exec "$here/usr/lib/draftscope/draftscope" "$@"
RUN
chmod 755 "$tree/AppRun"

mkdir -p "$out"
image="$out/draftscope-$version-$(uname -m).AppImage"
rm -f "$image"
ARCH=$(uname -m) VERSION=$version "$tool" --no-appstream ${RUNTIME_FILE:+--runtime-file "$RUNTIME_FILE"} \
    --comp zstd "$tree" "$image"
chmod 755 "$image"
echo "$image"
