// A service that is asked with a length and a body. Sent by two writes, each request waits 40 ms; FIXED=1 sends both at once.
const assert = require('node:assert');
const net = require('node:net');
const { once } = require('node:events');
const test = require('node:test');

// Gives back each message, length and all, once it is whole.
function serve(socket) {
    let held = Buffer.alloc(0);
    socket.on('data', (data) => {
        held = Buffer.concat([held, data]);
        while (held.length >= 4 && held.length >= 4 + held.readUInt32BE(0)) {
            const end = 4 + held.readUInt32BE(0);
            socket.write(held.subarray(0, end));
            held = held.subarray(end);
        }
    });
}

test('ten orders', async () => {
    const server = net.createServer(serve).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = net.connect(server.address().port, '127.0.0.1');
    await once(socket, 'connect');
    for (let number = 0; number < 10; number++) {
        const body = Buffer.from(`order ${number}`);
        const head = Buffer.alloc(4);
        head.writeUInt32BE(body.length);
        if (process.env.FIXED) {
            socket.write(Buffer.concat([head, body]));
        } else {
            socket.write(head);
            // as when the body is made while the head is on its way
            await new Promise(setImmediate);
            socket.write(body);
        }
        const [answer] = await once(socket, 'data');
        assert.strictEqual(answer.subarray(4).toString(), `order ${number}`);
    }
    socket.destroy();
    server.close();
});
