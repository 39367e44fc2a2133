"""Floor 10: the pages for people, made by Flask, and the contract as files. They read the contract, never the store."""
