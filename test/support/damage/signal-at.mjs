/**
 * Loaded before a command: signals its process at the first event of the main thread that
 * FACTORFLOW_SIGNAL_AT matches. FACTORFLOW_SIGNALS has the signals, with commas between them. Events:
 *   "call NAME PATH"   a call of node:fs/promises begins. The process sends itself the signals, and the call
 *                      goes on once they are handled, or never with FACTORFLOW_HOLD
 *   "line TEXT"        a write to stderr
 *   "task KERNEL"      a task is sent to a thread
 *   "openSync PATH"    a file is opened at once
 * The last three cannot wait for a signal, so the process's handlers of signals are called directly.
 */
import fs from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { isMainThread, MessagePort } from 'node:worker_threads';

const {
  FACTORFLOW_SIGNAL_AT: at = '',
  FACTORFLOW_SIGNALS: signals = '',
  FACTORFLOW_HOLD: hold,
} = process.env;
const { writeSync } = fs;
let isOver = at === '' || !isMainThread;

/** True at the event that is asked for, once. */
function reached(event) {
  if (isOver || !new RegExp(at).test(event)) return false;
  isOver = true;
  writeSync(2, `signal at ${event.trimEnd()}\n`);
  return true;
}

const sent = signals.split(',').filter(Boolean);

function handleAt(event) {
  if (reached(event)) for (const signal of sent) process.emit(signal, signal);
}

async function sendAll() {
  const pending = setInterval(() => {}, 1000);
  const handled = sent.map((signal) => new Promise((done) => process.once(signal, () => setImmediate(done))));
  for (const signal of sent) process.kill(process.pid, signal);
  await Promise.all(handled);
  clearInterval(pending);
}

if (!isOver) {
  const { postMessage } = MessagePort.prototype;
  MessagePort.prototype.postMessage = function (message, ...rest) {
    handleAt(`task ${message?.task?.request?.kernel}`);
    return postMessage.call(this, message, ...rest);
  };
  const write = process.stderr.write.bind(process.stderr);
  process.stderr.write = (text, ...rest) => {
    handleAt(`line ${text}`);
    return write(text, ...rest);
  };
  const { openSync } = fs;
  fs.openSync = (path, ...rest) => {
    handleAt(`openSync ${path}`);
    return openSync(path, ...rest);
  };
  for (const name of ['open', 'stat', 'mkdir']) {
    const call = promises[name];
    promises[name] = async (path, ...rest) => {
      if (reached(`call ${name} ${path}`)) {
        await sendAll();
        if (hold) await new Promise(() => {});
      }
      return call(path, ...rest);
    };
  }
  syncBuiltinESMExports();
}
