import { readlink, realpath } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** Most links that systems follow in one path. */
const MOST_LINKS = 40;

/** The target of links, also where it does not exist yet. */
export async function realPath(target: string, links = 0): Promise<string> {
  return realpath(target).catch(async () => {
    const link = links < MOST_LINKS ? await readlink(target).catch(() => undefined) : undefined;
    return link === undefined ? resolve(target) : realPath(resolve(dirname(target), link), links + 1);
  });
}
