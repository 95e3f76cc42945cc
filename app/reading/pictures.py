"""A picture of the conversation, as large as the screen allows."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import QGuiApplication, QPixmap
from PySide6.QtWidgets import QDialog, QLabel, QVBoxLayout, QWidget

from app.chat.cells import AttachedFile
from app.language import tr
from app.widgets import label

SHARE = 0.8
"""Of the screen, at most."""


def show_picture(file: AttachedFile, parent: QWidget) -> QDialog:
    """Open a picture in a window of its own; Escape closes it."""
    dialog = QDialog(parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setWindowTitle(file.name)
    picture = QPixmap()
    column = QVBoxLayout(dialog)
    if picture.loadFromData(QByteArray(file.data)):
        shown = QLabel()
        shown.setPixmap(_fitted(picture))
        shown.setAccessibleName(tr("Picture {name}", name=file.name))
        column.addWidget(shown)
        size = tr("{width} × {height} pixels", width=picture.width(), height=picture.height())
        column.addWidget(label(size, "caption"))
    else:
        why = tr("{name} cannot be shown: it is no picture that this computer can read.", name=file.name)
        column.addWidget(label(why))
    dialog.show()
    return dialog


def _fitted(picture: QPixmap) -> QPixmap:
    most: QSize = QGuiApplication.primaryScreen().availableSize() * SHARE
    if picture.width() <= most.width() and picture.height() <= most.height():
        return picture
    return picture.scaled(most, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation)
