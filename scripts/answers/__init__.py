"""What scripts/check_json.py knows: packets read apart from the program, what an answer must hold to, and broken answers."""
