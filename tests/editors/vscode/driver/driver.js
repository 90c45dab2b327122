// Runs what a test sends to it. Each line that comes is JSON: a function's body, and its argument `given`.
'use strict';
const net = require('node:net');
const readline = require('node:readline');
const vscode = require('vscode');

const AsyncFunction = (async () => {}).constructor;

exports.activate = (context) => {
  const socket = net.connect(Number(process.env.TEST_DRIVER_PORT), '127.0.0.1');
  socket.on('error', () => {}); // the test has ended
  readline.createInterface({ input: socket }).on('line', async (line) => {
    const { body, given } = JSON.parse(line);
    let answer;
    try {
      answer = { result: (await new AsyncFunction('vscode', 'given', body)(vscode, given)) ?? null };
    } catch (error) {
      answer = { error: String(error) };
    }
    socket.write(JSON.stringify(answer) + '\n');
  });
  context.subscriptions.push({ dispose: () => socket.destroy() });
};
