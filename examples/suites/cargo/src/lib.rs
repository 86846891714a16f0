//! A service that is asked with a length and a body. Sent by two writes, each request waits 40 ms; FIXED=1 sends both at once.

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::{env, thread};

    /// A message, length and all.
    fn message(from: &mut TcpStream) -> io::Result<Vec<u8>> {
        let mut message = vec![0; 4];
        from.read_exact(&mut message)?;
        let length = u32::from_be_bytes([message[0], message[1], message[2], message[3]]) as usize;
        message.resize(4 + length, 0);
        from.read_exact(&mut message[4..])?;
        Ok(message)
    }

    #[test]
    fn ten_orders() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        thread::spawn(move || {
            let (mut connection, _) = listener.accept().expect("a client");
            while let Ok(message) = message(&mut connection) {
                connection.write_all(&message).expect("the client reads");
            }
        });
        let mut connection = TcpStream::connect(address).expect("the server listens");
        for number in 0..10 {
            let body = format!("order {number}").into_bytes();
            let head = (body.len() as u32).to_be_bytes();
            if env::var_os("FIXED").is_some() {
                connection.write_all(&[&head[..], &body].concat()).expect("the server reads");
            } else {
                connection.write_all(&head).expect("the server reads");
                connection.write_all(&body).expect("the server reads");
            }
            assert_eq!(message(&mut connection).expect("an answer")[4..], body);
        }
    }
}
