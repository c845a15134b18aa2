import { Session, type SessionOptions } from '../../index.ts';

const sessions = new Map<string, Promise<Session>>();

/**
 * A session that the test files of a process share, since its threads take longer to start than most tests. It ends
 * with the process: tests that close a session or change its devices open their own.
 */
export function cpuSession(options: SessionOptions = {}): Promise<Session> {
  const key = JSON.stringify(options);
  const session = sessions.get(key) ?? Session.create({ device: 'cpu', workers: 2, ...options });
  sessions.set(key, session);
  return session;
}
