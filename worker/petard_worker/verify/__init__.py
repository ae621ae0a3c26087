"""The self-audit: what is stored and shown, against what the ledger comes to.

    ledger.py         every entry applied once more by the same pure code: outcome, changes, chains
    ratings.py        where everybody stands, against where that has led
    dead_letters.py   is every dead letter what it says it is?
    stream.py         does the change stream tell what the ledger says?
    board.py          does the leaderboard show what the table says?
    differences.py    what differs, said exactly
    audit.py          all of it, for one pool after the other

It reads and nothing else, while drains and the publisher go on: everything in Postgres as it was at one
moment, and in Redis what must agree with that moment whatever is published meanwhile.
"""
