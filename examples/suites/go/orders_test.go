// A service that is asked with a length and a body. Sent by two writes, each request waits 40 ms; FIXED=1 sends both at once.
package orders

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
)

// Gives back each message, length and all.
func serve(listener net.Listener) {
	connection, err := listener.Accept()
	if err != nil {
		return
	}
	defer connection.Close()
	for {
		message := make([]byte, 4)
		if _, err := io.ReadFull(connection, message); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(message))
		if _, err := io.ReadFull(connection, body); err != nil {
			return
		}
		connection.Write(append(message, body...))
	}
}

func TestTenOrders(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go serve(listener)
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	// Go sets TCP_NODELAY by itself; what is planted here is a program that takes it away.
	connection.(*net.TCPConn).SetNoDelay(false)
	for number := 0; number < 10; number++ {
		body := []byte(fmt.Sprintf("order %d", number))
		head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		if os.Getenv("FIXED") != "" {
			connection.Write(append(head, body...))
		} else {
			connection.Write(head)
			connection.Write(body)
		}
		answer := make([]byte, 4+len(body))
		if _, err := io.ReadFull(connection, answer); err != nil {
			t.Fatal(err)
		}
		if string(answer[4:]) != string(body) {
			t.Fatalf("%q is not %q", answer[4:], body)
		}
	}
}
