#!/bin/sh
# Makes dist/draftscope-VERSION-macos-ARCH.dmg of build/bundle/Draftscope.app, on macOS.
#
#   sh packaging/macos/make_dmg.sh VERSION
#
# With MACOS_IDENTITY ("Developer ID Application: …", in a keychain that is open) the program and the image are signed;
# with NOTARY_APPLE_ID, NOTARY_TEAM_ID and NOTARY_PASSWORD too, Apple notarises them. Without, the program keeps the
# ad-hoc signature that Apple's processors ask for, and people have to allow it in the system settings.
set -eu
version=${1:?say the version}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/../.."
app=build/bundle/Draftscope.app
image="dist/draftscope-$version-macos-$(uname -m).dmg"
[ -d "$app" ] || { echo "There is no $app; make it with: python packaging/bundle.py" >&2; exit 1; }

# PyInstaller made the .app before the notices were written.
cp build/bundle/draftscope/THIRD-PARTY-NOTICES.txt "$app/Contents/Resources/resources/"
mkdir -p dist

sign() {
    codesign --force --timestamp --sign "$MACOS_IDENTITY" "$@"
}

if [ -n "${MACOS_IDENTITY:-}" ]; then
    # From the inside out: a signature holds the digests of everything below it.
    find "$app" -type f \( -name '*.so' -o -name '*.dylib' \) -print | while IFS= read -r library; do
        sign --options runtime "$library"
    done
    find "$app/Contents/Frameworks" -type d -name '*.framework' -prune -print | while IFS= read -r framework; do
        sign --options runtime "$framework"
    done
    for program in draftscope draftscope-cli; do
        sign --options runtime --entitlements "$here/entitlements.plist" "$app/Contents/MacOS/$program"
    done
    sign --options runtime --entitlements "$here/entitlements.plist" "$app"
fi
[ -n "${MACOS_IDENTITY:-}" ] || codesign --force --deep --sign - "$app"
codesign --verify --deep --strict "$app"

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
cp -R "$app" "$staging/"
ln -s /Applications "$staging/Applications"
cp LICENSE "$staging/"
rm -f "$image"
hdiutil create -volname Draftscope -srcfolder "$staging" -fs HFS+ -format UDZO -imagekey zlib-level=9 "$image"

if [ -n "${MACOS_IDENTITY:-}" ]; then
    sign "$image"
    if [ -n "${NOTARY_APPLE_ID:-}" ] && [ -n "${NOTARY_TEAM_ID:-}" ] && [ -n "${NOTARY_PASSWORD:-}" ]; then
        xcrun notarytool submit "$image" --wait --apple-id "$NOTARY_APPLE_ID" --team-id "$NOTARY_TEAM_ID" \
            --password "$NOTARY_PASSWORD"
        xcrun stapler staple "$image"
    fi
fi
echo "$image"
