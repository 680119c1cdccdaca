"""Maps operators to their translations, and to fallbacks for operators without one."""
