// Ten requests in series by java.net.http against the server of the JDK.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

public class Calls {
    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            var body = "x".repeat(3000).getBytes();
            exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
        var address = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        for (int i = 0; i < 10; i++)
            client.send(HttpRequest.newBuilder(address).build(), BodyHandlers.ofString());
        server.stop(0);
        System.exit(0);
    }
}
