/**
 * Loaded in front of a command: writes its peak of resident memory in KiB to FACTORFLOW_PEAK_FILE as it ends,
 * and waits FACTORFLOW_IDLE milliseconds at most for the next bytes of a web server, where that is set.
 */
import { writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const { FACTORFLOW_PEAK_FILE: file, FACTORFLOW_IDLE: idle } = process.env;

if (isMainThread && file !== undefined)
  process.on('exit', () => writeFileSync(file, `${process.resourceUsage().maxRSS}`));
if (idle !== undefined) {
  const { patience } = await import('../../../dist/connectors/http/request.js');
  patience.idle = Number(idle);
}
