"""Jobs of data analysts, from files: each with ucle, and with the library that one would take."""
