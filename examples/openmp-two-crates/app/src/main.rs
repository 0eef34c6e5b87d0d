fn main() {
    println!("first:  {} (expected 42)", first::run(21));
    println!("second: {} (expected 22)", second::run(21));
    assert_eq!((first::run(21), second::run(21)), (42, 22));
    #[cfg(feature = "joined")]
    {
        println!("joined: {} (expected 43)", second::joined(21));
        assert_eq!(second::joined(21), 43);
    }
}
