/**
 * Loaded in front of a command: the first thread that looks at its clock for the FACTORFLOW_END_AT-th time
 * ends there: at odd numbers in a task, since threads look as a task begins and as it ends.
 * FACTORFLOW_END_MARK names a file that this thread makes, so that no other ends.
 */
import { writeFileSync } from 'node:fs';
import { isMainThread, threadId } from 'node:worker_threads';

const { FACTORFLOW_END_AT: at, FACTORFLOW_END_MARK: mark } = process.env;

if (!isMainThread && at !== undefined && mark !== undefined) {
  const read = process.hrtime;
  let left = Number(at);
  process.hrtime = Object.assign((time) => {
    if (--left === 0 && isFirst()) process.exit(1);
    return read(time);
  }, read);
}

function isFirst() {
  try {
    writeFileSync(mark, `${threadId}`, { flag: 'wx' });
    return true;
  } catch {
    return false;
  }
}
