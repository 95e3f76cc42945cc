"""Draftscope's window: a Qt program that starts the engine in a thread, receives its records, and draws."""

APP_ID = "io.github.draftscope.Draftscope"
"""The program's name among all programs: desktop file, AppStream component, icons, bundle identifier."""
