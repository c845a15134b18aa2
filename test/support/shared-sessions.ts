import { afterAll } from 'vitest';
import { Session, type SessionOptions } from '../../index.ts';

const sessions = new Map<string, Promise<Session>>();

/**
 * A session that the tests of a file share, since opening one starts its threads. It closes with the file.
 */
export function sharedSession(options: SessionOptions): Promise<Session> {
  const key = JSON.stringify(options);
  const session = sessions.get(key) ?? Session.create(options);
  sessions.set(key, session);
  return session;
}

afterAll(async () => {
  for (const session of sessions.values()) await (await session).close();
});
