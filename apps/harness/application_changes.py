"""Changes of an application's database that its pages show: rows whose texts stand on a page are changed, hidden, copied and removed, by
another program and by the site's own PHP by turns."""

import html
import itertools
import os
import re

TEXTS = ("char", "varchar", "text", "mediumtext", "longtext", "tinytext")
NUMBERS = ("int", "tinyint", "smallint", "mediumint", "bigint", "enum")
# Tables and columns that a page may show by accident, or without which there is no site.
NO_TABLES = re.compile(r"session|cache|_log|search|template|registry|router|menu_links|block|system|variable|settinggroups|l10n|objectcache", re.I)
NO_COLUMNS = re.compile(r"url|path|file|pass|template|theme|key|slug|type|format|class|hash|code|lang|salt|uid$|^name$(?<=user)|email|ip|thing|clean|option_name", re.I)
# The tables of PostgreSQL by the names that types have elsewhere.
COLUMNS_OF_POSTGRES = """SELECT relname, attname, CASE typname WHEN 'int2' THEN 'smallint' WHEN 'int4' THEN 'int' WHEN 'int8' THEN 'bigint'
    WHEN 'bpchar' THEN 'char' ELSE typname END,
    CASE WHEN attnum = ANY (indkey) THEN 'PRI' END FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN pg_type t ON t.oid = atttypid
    LEFT JOIN pg_index ON indrelid = c.oid AND indisprimary
    WHERE relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped AND pg_table_is_visible(c.oid)
      AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) ORDER BY relname, attnum"""
LONGEST = 300
LONGEST_FILE = 100_000
ROWS = 60
# Then the same again: a row of another table each time.
KINDS = ("text", "text", "number", "back", "copy", "text", "text", "removal")


class Row:
    """A row of a table by its key, with a text that a page shows."""

    def __init__(self, table, keys, column, value):
        self.table, self.keys, self.column, self.value = table, keys, column, value
        self.where = " AND ".join(f"{name} = {quoted(key)}" for name, key in keys.items())


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Changes:
    def __init__(self, site, shown):
        self.site = site
        self.quote = "`" if site.is_mysql else '"'
        self.tables = self._tables()
        self.rows = list(self._by_turns(self._rows(shown)))
        self.kinds = itertools.cycle(KINDS)
        self.writers = itertools.cycle(("foreign", "pool"))
        self.back = None
        self.number = 0
        self.pending = None

    def _tables(self):
        """For each table its columns with their types, and those of its key."""
        site = self.site
        tables = {}
        if site.database:
            rows = site.sql(f"SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_KEY, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{site.database.name}' ORDER BY TABLE_NAME, ORDINAL_POSITION" if site.is_mysql else COLUMNS_OF_POSTGRES)
            for table, column, kind, key, *extra in rows:
                names, keys = tables.setdefault(table, ({}, []))
                names[column] = kind.lower()
                if key == "PRI":
                    keys.append(column)
        else:
            for (table,) in site.sql("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE '%VIRTUAL%' ORDER BY name"):
                names, keys = tables.setdefault(table, ({}, []))
                for _, column, kind, _, _, key in site.sql(f"PRAGMA table_info({table})"):
                    names[column] = re.sub(r"\W.*", "", kind.lower())
                    if key != "0":
                        keys.append(column)
        return {table: columns for table, columns in tables.items() if columns[1] and not NO_TABLES.search(table)}

    def _name(self, name):
        return f"{self.quote}{name}{self.quote}"

    def _rows(self, shown):
        """For each column of texts, the rows whose text stands on a page."""
        found = {}
        for table, (columns, keys) in self.tables.items():
            for column, kind in columns.items():
                if kind not in TEXTS or NO_COLUMNS.search(column) or column in keys:
                    continue
                names = ", ".join(map(self._name, [*keys, column]))
                # Of those with the highest numbers, since the first ones belong to the application.
                asked = f"SELECT {names} FROM {self._name(table)} WHERE LENGTH({self._name(column)}) BETWEEN 4 AND {LONGEST} ORDER BY {self._name(keys[0])} DESC LIMIT {ROWS}"
                for *key, value in self.site.sql(asked):
                    if len(key) == len(keys) and re.fullmatch(r"[A-Z][^<>{}\\\n\"]{3,}", value) and (value in shown or html.escape(value) in shown):
                        named = dict(zip(map(self._name, keys), key, strict=True))
                        found.setdefault((table, column), []).append(Row(self._name(table), named, self._name(column), value))
        return list(found.values())

    def _by_turns(self, groups):
        for each in itertools.zip_longest(*groups):
            yield from (row for row in each if row)

    def following(self):
        """Who makes the next change, its name, and a function that makes it."""
        if not self.rows:
            return None
        kind = next(self.kinds)
        if self.back and (kind == "back" or self.pending == "broken"):
            statement, self.back, self.pending = self.back, None, None
            return self._by("back again", statement)
        if kind == "back":
            kind = "text"
        row = self.rows.pop(0)
        self.number += 1
        columns, keys = self.tables[row.table.strip("`\"")]
        if kind == "number":
            number = next((name for name, type_ in columns.items() if type_ in NUMBERS and type_ != "enum" and name not in keys), None)
            if number:
                self.back = f"UPDATE {row.table} SET {self._name(number)} = {self._name(number)} - 1 WHERE {row.where}"
                return self._by(f"a number ({number}) of {row.table}", self.back.replace("- 1", "+ 1"))
            kind = "text"
        if kind == "copy" and len(keys) == 1 and columns[keys[0]] in (*NUMBERS, "integer"):
            names = ", ".join(self._name(name) for name in columns if name not in keys)
            self.back = None
            return self._by(f"a copy of a row of {row.table}", f"INSERT INTO {row.table} ({names}) SELECT {names} FROM {row.table} WHERE {row.where}")
        if kind == "removal":
            self.back = None
            return self._by(f"a row of {row.table} is removed", f"DELETE FROM {row.table} WHERE {row.where}")
        self.back = f"UPDATE {row.table} SET {row.column} = {quoted(row.value)} WHERE {row.where}"
        text = f"{row.value[: LONGEST - 20]} no {self.number}"
        return self._by(f"{row.column} of {row.table}", f"UPDATE {row.table} SET {row.column} = {quoted(text)} WHERE {row.where}")

    def _by(self, name, statement):
        who = next(self.writers)
        statements = "\n;\n".join([statement, *self.site.application.after(self.site)])
        return who, name, lambda: (self.site.sql if who == "foreign" else self.site.own_sql)(statements)

    def failed(self):
        self.back = None

    def made(self, is_broken):
        """A site that the change has broken gets its text back."""
        self.pending = "broken" if is_broken else None


class FileChanges:
    """Changes of files whose texts pages show, by another program."""

    def __init__(self, site, shown):
        self.site = site
        self.found = []
        for folder, _, names in sorted(os.walk(os.path.join(site.root, site.application.content))):
            for name in sorted(names):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="replace") as file:
                    words = [line for line in re.findall(r"[A-Z][\w ,.']{8,60}", file.read(LONGEST_FILE)) if line in shown or html.escape(line) in shown]
                if words:
                    self.found.append((path, words))
        self.number = 0

    def following(self):
        if not self.found:
            return None
        path, words = self.found[self.number % len(self.found)]
        word = words[self.number // len(self.found) % len(words)]
        self.number += 1

        def make():
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(word, f"{word} no {self.number}", 1))

        return "foreign", f"{os.path.relpath(path, self.site.root)}: {word[:20]}", make

    def failed(self):
        pass

    def made(self, is_broken):
        pass
