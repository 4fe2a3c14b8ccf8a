//! Packages of the operating system that the tests want: installed where that can be done without a
//! question, named where it can't.

use crate::report::Outcome;
use crate::shell;

/// Installs these packages of Debian and its kin.
///
/// # Errors
/// The reason why not, and what to install.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let names = packages.join(" ");
    if !shell::succeeds(shell::program("apt-get").arg("--version")) {
        return Err(format!("no apt-get here; install what Debian calls: {names}"));
    }
    let Some(lead) = privilege() else {
        return Err(format!("not root, and sudo asks for a password: apt-get install {names}"));
    };
    eprintln!("installing {names}");
    let update = apt_get(lead, &["-qq", "update"]);
    // Lists that are a little old are good enough, so an update that fails decides nothing.
    let _ = update;
    let arguments = ["-qq", "-y", "--no-install-recommends", "install"];
    match apt_get(lead, &[&arguments[..], packages].concat()) {
        Outcome::Passed => Ok(()),
        Outcome::Failed(why) | Outcome::NotRun(why) => Err(format!("{why}; install {names}")),
    }
}

/// What to put before a command that only root may run, if that can be had without a question.
fn privilege() -> Option<&'static [&'static str]> {
    let user = shell::output(shell::program("id").arg("-u"));
    if user.is_some_and(|id| id.trim() == "0") {
        return Some(&[]);
    }
    shell::succeeds(shell::program("sudo").args(["-n", "true"])).then_some(&["sudo", "-n"])
}

fn apt_get(lead: &[&str], arguments: &[&str]) -> Outcome {
    // `env` because sudo does not pass variables on.
    let words = [lead, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], arguments].concat();
    let Some((first, rest)) = words.split_first() else { return Outcome::Passed };
    shell::run(shell::program(first).args(rest))
}
