//! What lower floors call of those above them: plain functions in tables that are put
//! together at the top of the crate and held by the configuration in force.

use crate::exchange::variable_table::VariableTable;

/// The functions of the server.
pub struct Functions {
    pub variables: VariableTable,
}
