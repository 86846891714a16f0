import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

/** A service that is asked with a length and a body. Sent by two writes, each request waits 40 ms; FIXED=1 sends both at once. */
class OrdersTest {
    /** Gives back each message, length and all. */
    private static void serve(ServerSocket listener) {
        try (Socket connection = listener.accept()) {
            DataInputStream in = new DataInputStream(connection.getInputStream());
            while (true) {
                byte[] body = new byte[in.readInt()];
                in.readFully(body);
                connection.getOutputStream().write(message(body));
            }
        } catch (IOException end) {
            // The client has closed.
        }
    }

    private static byte[] message(byte[] body) {
        return ByteBuffer.allocate(4 + body.length).putInt(body.length).put(body).array();
    }

    @Test
    void tenOrders() throws IOException {
        InetAddress loopback = InetAddress.getByName("127.0.0.1");
        try (ServerSocket listener = new ServerSocket(0, 1, loopback)) {
            Thread server = new Thread(() -> serve(listener));
            server.setDaemon(true);
            server.start();
            try (Socket connection = new Socket(loopback, listener.getLocalPort())) {
                OutputStream out = connection.getOutputStream();
                DataInputStream in = new DataInputStream(connection.getInputStream());
                for (int number = 0; number < 10; number++) {
                    byte[] body = ("order " + number).getBytes();
                    if (System.getenv("FIXED") != null) {
                        out.write(message(body));
                    } else {
                        out.write(ByteBuffer.allocate(4).putInt(body.length).array());
                        out.write(body);
                    }
                    byte[] answer = new byte[in.readInt()];
                    in.readFully(answer);
                    assertArrayEquals(body, answer);
                }
            }
        }
    }
}
