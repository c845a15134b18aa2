import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Opens a connection to a server. */
export async function connected(address: string): Promise<Socket> {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname).setEncoding('utf8');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** All that a server sends until it closes the connection. */
export async function allOf(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: string) => (text += chunk));
  await new Promise((resolve) => socket.on('close', resolve));
  return text;
}
