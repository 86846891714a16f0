// Thirty calls in series over net/rpc, as its documentation shows it.
package main

import (
	"fmt"
	"net"
	"net/rpc"
	"strings"
)

type Words struct{}

func (Words) Repeat(n int, out *string) error {
	*out = strings.Repeat("word ", n)
	return nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := rpc.NewServer()
	if err := server.Register(Words{}); err != nil {
		panic(err)
	}
	go server.Accept(listener)
	client, err := rpc.Dial("tcp", listener.Addr().String())
	if err != nil {
		panic(err)
	}
	for i := 0; i < 30; i++ {
		var words string
		if err := client.Call("Words.Repeat", 100*i, &words); err != nil {
			panic(err)
		}
	}
	fmt.Println("done")
}
