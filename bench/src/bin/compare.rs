//! Runs the rows and prints them beside the goals.

use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Parser;
use grainstore_bench::allocator::Counting;
use grainstore_bench::instructions;
use grainstore_bench::measure::pair::Pair;
use grainstore_bench::measure::quiet;
use grainstore_bench::measure::rounds::Budget;
use grainstore_bench::report::{Results, goals, json, text};
use grainstore_bench::rows::{self, Context, Row};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Grainstore and its peers on the same work, in one process, in turn, round after round.
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Arguments {
    /// Rows to run, by a part of their name; all where none is named
    rows: Vec<String>,
    /// Only subjects with this in their name, beside our own; may be given again
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Take minutes instead of seconds: many rounds, and instructions of everything
    #[arg(long)]
    full: bool,
    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
    /// Count no instructions
    #[arg(long)]
    no_instructions: bool,
    /// List the rows and stop
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = instructions::serve(&arguments) {
        return code;
    }
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let asked = |row: &&Row| {
        arguments.rows.is_empty() || arguments.rows.iter().any(|part| row.name.contains(part))
    };
    let rows: Vec<&Row> = rows::ALL.iter().filter(asked).collect();
    if rows.is_empty() {
        let names: Vec<&str> = rows::ALL.iter().map(|row| row.name).collect();
        return Err(format!("no row is named like that; there are: {}", names.join(", ")));
    }
    if arguments.list {
        for row in rows {
            println!("{:20} {}", row.name, row.about);
        }
        return Ok(());
    }
    quiet::calibrate();
    let context = context(arguments);
    let mut results = Results::default();
    for row in rows {
        eprint!("{}", row.name);
        let start = Instant::now();
        results.rows.push(row.measure(&context));
        eprintln!(" ({:.1} s)", start.elapsed().as_secs_f64());
    }
    let goals = goals::judge(&results);
    let mode = if arguments.full { "full" } else { "quick" };
    if arguments.json {
        println!("{}", json::document(mode, &results, &goals)?);
    } else {
        println!("{}{}", text::rows(&results), text::goals(&goals));
    }
    Ok(())
}

fn context(arguments: &Arguments) -> Context {
    let (budget, wanted) = if arguments.full {
        (Budget { rounds: 101, time: Duration::from_secs(20) }, rows::Counting::Everything)
    } else {
        (Budget { rounds: 25, time: Duration::from_secs(1) }, rows::Counting::Few)
    };
    let counting = match instructions::available() {
        _ if arguments.no_instructions => rows::Counting::Nothing,
        Ok(()) => wanted,
        Err(why) => {
            eprintln!("no instructions are counted: {why}");
            rows::Counting::Nothing
        }
    };
    let pair = Pair::new().map(Rc::new);
    Context { budget, only: arguments.only.clone(), pair, counting }
}
