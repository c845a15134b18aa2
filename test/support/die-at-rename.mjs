/** Loaded in front of a command: kills the process at once behind its n-th rename (FACTORFLOW_DIE_AT_RENAME), as a crash would. */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const { rename } = fs;
let left = Number(process.env.FACTORFLOW_DIE_AT_RENAME);

if (isMainThread) {
  fs.rename = async (from, to) => {
    await rename(from, to);
    if (--left === 0) process.kill(process.pid, 'SIGKILL');
  };
  syncBuiltinESMExports();
}
