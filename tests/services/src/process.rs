//! A child process that is killed when dropped and whose output lands in a file.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Processors of services and of nodes; -1 = any. Set once by a benchmark before anything starts.
static PINS: [AtomicI32; 2] = [AtomicI32::new(-1), AtomicI32::new(-1)];

/// What a process is, for pinning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Service,
    Node,
}

/// Runs every process of a role that starts from now on on one processor.
pub fn pin(role: Role, processor: usize) {
    PINS[role as usize].store(processor as i32, Ordering::Relaxed);
}

pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Starts `command`; its output goes to `log`. It dies with this process, even by SIGKILL.
    pub fn start(name: &str, command: Command, log: &Path) -> Result<Self> {
        Self::start_as(Role::Service, name, command, log)
    }

    pub fn start_as(role: Role, name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let out = File::options().create(true).append(true).open(log)?;
        let processor = usize::try_from(PINS[role as usize].load(Ordering::Relaxed)).ok();
        // SAFETY: only system calls that are async-signal-safe, on the stack of the child.
        unsafe {
            command.pre_exec(move || {
                if let Some(processor) = processor {
                    let mut set = CpuSet::new();
                    set.set(processor)?;
                    sched_setaffinity(Pid::from_raw(0), &set)?;
                }
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(std::io::Error::from)
            });
        }
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let what = format!("starting {name}: {command:?}");
        let child = spawn(command).context(what)?;
        Ok(Self { child, name: name.to_owned(), log: log.to_owned() })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill(Pid::from_raw(self.child.id() as i32), signal).with_context(|| format!("{signal} to {}", self.name))
    }

    /// SIGKILL and reap.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for the end of the process.
    pub async fn ended(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let end = Instant::now() + deadline;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > end {
                bail!("{} still runs after {deadline:?}; log: {}", self.name, self.log.display());
            }
            // Between two looks: a standard child tells its end to nobody who does not block.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What it printed so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// An error with the end of the output, for a process that ended or never came up.
    pub fn failure(&self, what: &str) -> anyhow::Error {
        let output = self.output();
        let tail: Vec<&str> = output.lines().rev().take(25).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        anyhow::anyhow!("{}: {what}\n{}", self.name, tail.join("\n"))
    }
}

/// Spawns from one thread that never ends: the kernel ends a child with the thread that made it, and
/// tests come and go with threads of their own.
fn spawn(command: Command) -> Result<Child> {
    type Job = (Command, mpsc::Sender<std::io::Result<Child>>);
    static JOBS: OnceLock<Mutex<mpsc::Sender<Job>>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            for (mut command, answer) in receiver {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    let (answer, child) = mpsc::channel();
    jobs.lock().map_err(|_| anyhow::anyhow!("the spawning thread is gone"))?.send((command, answer))?;
    Ok(child.recv()??)
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
