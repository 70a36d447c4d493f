//! One thing that the runtime watches of a socket: whether something has come, or whether it takes more.
//!
//! Each is watched under a descriptor of its own, and only while somebody wants to know. Linux says with each datagram that has
//! left a socket that there is room again: whoever had asked for both would be woken twice for each answer.

pub(super) use imp::{Watched, error_of};

#[cfg(unix)]
mod imp {
    use std::future::Future;
    use std::io;
    use std::net::UdpSocket;
    use std::task::{Context, Poll};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// See the module.
    pub(in crate::driver) struct Watched {
        socket: AsyncFd<UdpSocket>,
        interest: Interest,
    }

    impl Watched {
        /// Watches `socket` for what `interest` names: reading or writing.
        ///
        /// # Errors
        /// If there are too few descriptors, or the system does not watch it.
        pub(in crate::driver) fn new(socket: &UdpSocket, interest: Interest) -> io::Result<Self> {
            Ok(Watched { socket: watch(socket, interest)?, interest })
        }

        /// Whether it is ready. If not, the task is woken when it is.
        pub(in crate::driver) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            let ready = if self.interest.is_readable() {
                self.socket.poll_read_ready(cx)
            } else {
                self.socket.poll_write_ready(cx)
            };
            ready.map_ok(|_| ())
        }

        /// Does what it is ready for. If `attempt` says that it is not, neither is it from then on.
        pub(in crate::driver) fn attempt(&self, attempt: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
            self.socket.try_io(self.interest, |_| attempt())
        }
    }

    #[expect(
        deprecated,
        reason = "its successor is unsafe; this socket owns its one descriptor while it lives"
    )]
    fn watch(socket: &UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
        AsyncFd::with_interest(socket.try_clone()?, interest)
    }

    /// Ready when there is something in the socket's error queue.
    ///
    /// # Errors
    /// If there are too few descriptors, or the system does not watch it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(in crate::driver) fn error_of(
        socket: &UdpSocket,
    ) -> io::Result<impl Future<Output = io::Result<()>> + use<>> {
        let socket = watch(socket, Interest::ERROR)?;
        Ok(async move { socket.ready(Interest::ERROR).await.map(drop) })
    }

    /// Such systems do not tell.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(in crate::driver) fn error_of(
        _: &UdpSocket,
    ) -> io::Result<impl Future<Output = io::Result<()>> + use<>> {
        Ok(std::future::pending())
    }
}

#[cfg(not(unix))]
mod imp {
    use std::future::Future;
    use std::io;
    use std::task::{Context, Poll};
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    /// See the module.
    pub(in crate::driver) struct Watched {
        socket: UdpSocket,
        interest: Interest,
    }

    impl Watched {
        /// Watches `socket` for what `interest` names: reading or writing.
        ///
        /// # Errors
        /// If there are too few handles, or the system does not watch it.
        pub(in crate::driver) fn new(socket: &std::net::UdpSocket, interest: Interest) -> io::Result<Self> {
            Ok(Watched { socket: UdpSocket::from_std(socket.try_clone()?)?, interest })
        }

        /// Whether it is ready. If not, the task is woken when it is.
        pub(in crate::driver) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            if self.interest.is_readable() {
                self.socket.poll_recv_ready(cx)
            } else {
                self.socket.poll_send_ready(cx)
            }
        }

        /// Does what it is ready for. If `attempt` says that it is not, neither is it from then on.
        pub(in crate::driver) fn attempt(&self, attempt: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
            self.socket.try_io(self.interest, attempt)
        }
    }

    /// Such systems do not tell.
    pub(in crate::driver) fn error_of(
        _: &std::net::UdpSocket,
    ) -> io::Result<impl Future<Output = io::Result<()>> + use<>> {
        Ok(std::future::pending())
    }
}
