//! The application's own threads for the work of the library (preview).

use crate::abi::{Execution, ExecutionConfig, GlobalExecutionConfigFlags, Handle, Status};
use crate::worker::executions;
use std::os::fd::BorrowedFd;

pub(super) unsafe extern "C" fn create(
    _flags: GlobalExecutionConfigFlags,
    _polling_idle_timeout_us: u32,
    count: u32,
    configs: *mut ExecutionConfig,
    made: *mut *mut Execution,
) -> Status {
    // SAFETY: the application has given so many.
    let configs = unsafe { super::slice(configs.cast_const(), count as usize) };
    let Some(configs) = configs.filter(|configs| !configs.is_empty() && !made.is_null()) else {
        return Status::INVALID_PARAMETER;
    };
    let mut queues = Vec::new();
    for config in configs {
        // SAFETY: the application has given a place with a descriptor, or none.
        let queue = unsafe { config.event_queue.as_ref() }.copied().filter(|queue| *queue >= 0);
        let Some(queue) = queue else { return Status::OUT_OF_MEMORY };
        // SAFETY: it is the application's, which has it open during the call.
        queues.push(unsafe { BorrowedFd::borrow_raw(queue) });
    }
    match executions::create(&queues) {
        Ok(handles) => {
            for (index, handle) in handles.into_iter().enumerate() {
                // SAFETY: the application has given as many places.
                unsafe { made.add(index).write(handle.cast()) };
            }
            Status::SUCCESS
        }
        Err(status) => status,
    }
}

pub(super) unsafe extern "C" fn delete(_count: u32, _executions: *mut *mut Execution) {
    executions::delete();
}

pub(super) unsafe extern "C" fn poll(execution: *mut Execution) -> u32 {
    let handle: Handle = execution.cast();
    executions::poll(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    fn created(count: u32, configs: *mut ExecutionConfig, made: *mut *mut Execution) -> Status {
        // SAFETY: there is what is pointed to, or nothing that is.
        unsafe { create(GlobalExecutionConfigFlags::NONE, 0, count, configs, made) }
    }

    #[test]
    fn what_is_missing_or_no_queue_is_refused() {
        let mut made = null_mut();
        // One that is not open, and one that is nothing to wait in.
        let mut queues = [-1, 0];
        let [closed, input] = queues.each_mut().map(std::ptr::from_mut);
        let mut config = ExecutionConfig { ideal_processor: 0, event_queue: closed };
        let (refused, failed) = (Status::INVALID_PARAMETER, Status::OUT_OF_MEMORY);
        assert_eq!(created(1, null_mut(), &raw mut made), refused);
        assert_eq!(created(1, &raw mut config, null_mut()), refused);
        assert_eq!(created(0, &raw mut config, &raw mut made), refused);
        assert_eq!(created(1, &raw mut config, &raw mut made), failed);
        config.event_queue = input;
        assert_eq!(created(1, &raw mut config, &raw mut made), failed);
        config.event_queue = null_mut();
        assert_eq!(created(1, &raw mut config, &raw mut made), failed);
        assert!(made.is_null());
        // SAFETY: it is nobody's.
        assert_eq!(unsafe { poll(null_mut()) }, u32::MAX);
    }
}
