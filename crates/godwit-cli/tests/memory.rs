//! The program's allocator gives back what is free when it is told to.
#![cfg(target_os = "linux")]

use godwit_os::heap;

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[test]
fn what_is_free_between_what_is_used_is_given_back() {
    const BLOCKS: usize = 64 << 10;
    heap::without_huge_pages();
    let mut blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|_| vec![1; 1024]).collect();
    let full = heap::resident().unwrap();
    // One in a thousand stays, so that nothing is free to the end.
    let mut number = 0;
    blocks.retain(|_| {
        number += 1;
        number % 1000 == 0
    });
    assert!(heap::give_back());
    let left = heap::resident().unwrap();
    let most = full - (BLOCKS as u64 * 1024) / 2;
    assert!(left < most, "{full} bytes when all was in use, {left} afterwards");
    assert!(blocks.iter().all(|block| block.iter().all(|byte| *byte == 1)));
}
