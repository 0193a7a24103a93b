//! One test program of the directive table and of what it makes of a configuration.

mod facts;
mod golden;
mod reading;
mod reference;
mod table;
