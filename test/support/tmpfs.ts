import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

/** Runs `test` in a tiny file system at `path`; says so when none can be mounted. */
export async function withTmpfs(
  skip: (reason: string) => void,
  path: string,
  options: string,
  test: (path: string) => Promise<void>,
): Promise<void> {
  mkdirSync(path);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path], { stdio: 'pipe' });
  } catch (error) {
    return skip(
      `no tmpfs can be mounted here (${error instanceof Error ? error.message.split('\n')[0] : String(error)})`,
    );
  }
  try {
    await test(path);
  } finally {
    execFileSync('umount', [path]);
  }
}
