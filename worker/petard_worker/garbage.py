"""How often Python looks for garbage that counting references leaves behind."""

import gc

OBJECTS_BETWEEN_COLLECTIONS = 50_000


def calm_garbage_collector() -> None:
    """Keep it from walking all modules, and all that is known of players, again and again.

    Events make tens of thousands of objects and free them without its help: there are no cycles among them.
    Looking for some took a sixth of a busy worker's time, and a fifth of an audit's.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
