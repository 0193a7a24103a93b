return epoch() or ''
