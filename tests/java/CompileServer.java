import java.io.ByteArrayOutputStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.charset.StandardCharsets;
import javax.tools.ToolProvider;

/**
 * Compiles for the tests, in one machine: the start of a compiler takes longer than most programs.
 *
 * <p>The argument is the path of the socket. A client sends the words of {@code javac}, with a NUL between them, and
 * closes its side; the answer is the exit code, a line end, and what the compiler says.
 */
class CompileServer {
    public static void main(String[] args) throws Exception {
        var compiler = ToolProvider.getSystemJavaCompiler();
        try (var server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            server.bind(UnixDomainSocketAddress.of(args[0]));
            System.out.println("ready");
            while (true) {
                try (var client = server.accept()) {
                    byte[] words = Channels.newInputStream(client).readAllBytes();
                    var said = new ByteArrayOutputStream();
                    int code = compiler.run(null, said, said, new String(words, StandardCharsets.UTF_8).split("\0"));
                    var out = Channels.newOutputStream(client);
                    out.write((code + "\n").getBytes(StandardCharsets.UTF_8));
                    said.writeTo(out);
                } catch (java.io.IOException e) {
                    System.err.println(e); // a client that is killed
                }
            }
        }
    }
}
