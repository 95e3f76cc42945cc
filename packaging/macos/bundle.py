"""The .app around the frozen program: what PyInstaller's `BUNDLE` is given. Plain data, usable on every platform."""

from __future__ import annotations

from typing import Any

from app import APP_ID
from engine.version import __version__

OLDEST_SYSTEM = "13.0"
"""What the newest Qt for Python needs."""


def info_plist() -> dict[str, Any]:
    """Info.plist beyond what PyInstaller writes by itself."""
    return {
        "CFBundleDisplayName": "Draftscope",
        "CFBundleShortVersionString": __version__,
        "CFBundleVersion": __version__,
        "LSApplicationCategoryType": "public.app-category.developer-tools",
        "LSMinimumSystemVersion": OLDEST_SYSTEM,
        "NSHighResolutionCapable": True,
        "NSHumanReadableCopyright": "The Draftscope authors; Apache License 2.0",
        "NSRequiresAquaSystemAppearance": False,
        "CFBundleDocumentTypes": [
            document("GGUF model", f"{APP_ID}.gguf"),
            document("safetensors model", f"{APP_ID}.safetensors"),
            document("Draftscope run", f"{APP_ID}.jsonl"),
            {
                "CFBundleTypeName": "Model folder",
                "CFBundleTypeRole": "Viewer",
                "LSHandlerRank": "Alternate",
                "LSItemContentTypes": ["public.folder"],
            },
        ],
        "UTImportedTypeDeclarations": [
            file_type("GGUF model", "gguf", "public.data"),
            file_type("safetensors model", "safetensors", "public.data"),
            file_type("JSON lines", "jsonl", "public.text"),
        ],
    }


def document(name: str, kind: str) -> dict[str, Any]:
    """A type that the program opens, and takes from no other program."""
    return {
        "CFBundleTypeName": name,
        "CFBundleTypeRole": "Viewer",
        "LSHandlerRank": "Alternate",
        "LSItemContentTypes": [kind],
    }


def file_type(name: str, suffix: str, kind_of: str) -> dict[str, Any]:
    """A file type that others defined, described in case that nobody else does."""
    return {
        "UTTypeIdentifier": f"{APP_ID}.{suffix}",
        "UTTypeDescription": name,
        "UTTypeConformsTo": [kind_of],
        "UTTypeTagSpecification": {"public.filename-extension": [suffix]},
    }
