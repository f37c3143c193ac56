"""What holds for every test: no key or setting of the person at the keyboard reaches one."""

import os

from hypothesis import settings

_FOR_TESTS = {"CANTLE_FULL", "CANTLE_REF", "CANTLE_REF_CACHE", "CANTLE_COLLECTED_TESTS"}

for _name in list(os.environ):
    if _name.endswith("_API_KEY") or (_name.startswith("CANTLE_") and _name not in _FOR_TESTS):
        del os.environ[_name]

# A busy machine is no reason for a property to fail.
settings.register_profile("cantle", deadline=None, print_blob=True)
settings.load_profile("cantle")
