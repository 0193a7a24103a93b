"""Named checks, printed as they are made, and the closing line."""


class Report:
    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, name, is_true, detail=""):
        if is_true:
            self.passed += 1
            print(f"ok    {name}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL  {name}" + (f": {detail}" if detail else ""), flush=True)
        return bool(is_true)

    def note(self, text):
        for line in str(text).splitlines():
            print(f"#     {line}", flush=True)

    def closing_line(self):
        return f"{self.passed} passed, {self.failed} failed"
