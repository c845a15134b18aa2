import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A folder for the test file that calls this as it loads; it is removed after its tests. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'factorflow-test-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
