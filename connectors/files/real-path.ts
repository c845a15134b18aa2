import { readlink, realpath } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** Most links in one path; systems have the same limit. */
const MOST_LINKS = 40;

/** Resolves links, even if the target does not exist yet. */
export async function realPath(target: string, links = 0): Promise<string> {
  return realpath(target).catch(async () => {
    const link = links < MOST_LINKS ? await readlink(target).catch(() => undefined) : undefined;
    return link === undefined ? resolve(target) : realPath(resolve(dirname(target), link), links + 1);
  });
}
