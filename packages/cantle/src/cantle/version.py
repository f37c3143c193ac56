"""The version of this distribution. All Cantle distributions share it."""

VERSION = "0.1.0"
