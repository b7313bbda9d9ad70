//! Writes the control file and the installation script of the extension into a directory. The
//! macros of pgrx have stored the SQL objects in a section of the library.
//!
//! This is the part of cargo-pgrx that `make demo` needs. Compiling all of cargo-pgrx takes more
//! than a minute. `make check` compares the files with those of cargo-pgrx.

use std::{env, error::Error, fs, path::Path};

use object::{Object, ObjectSection};
use pgrx_sql_entity_graph::{ControlFile, PgrxSql, SqlGraphEntity, section::decode_entities};

const CONTROL: &str = include_str!("../../../pg_hugeinfo.control");

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [library, directory] = &arguments[..] else {
        return Err("usage: hugeinfo-schema LIBRARY DIRECTORY".into());
    };
    let directory = Path::new(directory);
    let version = env!("CARGO_PKG_VERSION");
    let control = CONTROL.replace("@CARGO_VERSION@", version);

    let bytes = fs::read(library)?;
    let library = object::File::parse(&bytes[..])?;
    let section = library
        .section_by_name(".pgrxsc")
        .ok_or("the library contains no SQL objects")?;
    let mut entities = vec![SqlGraphEntity::ExtensionRoot(ControlFile::from_str(
        &control,
    )?)];
    entities.extend(decode_entities(section.data()?)?);
    let script = PgrxSql::build(entities.into_iter(), "pg_hugeinfo".to_owned(), false)?;

    fs::create_dir_all(directory)?;
    fs::write(directory.join("pg_hugeinfo.control"), control)?;
    script.to_file(directory.join(format!("pg_hugeinfo--{version}.sql")))?;
    Ok(())
}
