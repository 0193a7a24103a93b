//! The queries that ask a server for its tables: the rows of the answers go to `SchemaBuilder::row`.

/// In the order in which they are to be asked, on one connection of the application. A definition that
/// changes in between makes the whole schema old, as every definition does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaQuery {
    Tables,
    Columns,
    Keys,
    Views,
    Rights,
    Triggers,
    ForeignKeys,
}

impl SchemaQuery {
    pub const ALL: [Self; 7] = [
        Self::Tables,
        Self::Columns,
        Self::Keys,
        Self::Views,
        Self::Rights,
        Self::Triggers,
        Self::ForeignKeys,
    ];

    /// Its text. What it returns is text in UTF-8, without NULL.
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Tables => {
                "SELECT table_schema, table_name, table_type, IFNULL(engine, '') FROM information_schema.tables
                 WHERE table_schema NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')"
            }
            Self::Columns => {
                "SELECT table_schema, table_name, column_name, data_type, column_type,
                   IFNULL(character_maximum_length, 0), IFNULL(collation_name, ''), is_nullable, extra
                 FROM information_schema.columns
                 WHERE table_schema NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')
                 ORDER BY table_schema, table_name, ordinal_position"
            }
            Self::Keys => {
                "SELECT table_schema, table_name, index_name, IFNULL(column_name, ''), non_unique, IFNULL(sub_part, 0)
                 FROM information_schema.statistics
                 WHERE table_schema NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')
                 ORDER BY table_schema, table_name, index_name, seq_in_index"
            }
            Self::Views => {
                "SELECT table_schema, table_name, IFNULL(view_definition, '') FROM information_schema.views
                 WHERE table_schema NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')"
            }
            // Triggers are shown to accounts with this right alone.
            Self::Rights => {
                "SELECT table_schema, '%' FROM information_schema.schema_privileges WHERE privilege_type = 'TRIGGER'
                 UNION ALL SELECT '%', '%' FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER'
                 UNION ALL SELECT table_schema, table_name FROM information_schema.table_privileges
                 WHERE privilege_type = 'TRIGGER'"
            }
            Self::Triggers => {
                "SELECT event_object_schema, event_object_table, IFNULL(action_statement, '')
                 FROM information_schema.triggers"
            }
            Self::ForeignKeys => {
                "SELECT unique_constraint_schema, referenced_table_name, constraint_schema, table_name,
                   update_rule, delete_rule FROM information_schema.referential_constraints"
            }
        }
    }
}
