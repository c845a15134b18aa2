import { closeSync, readSync } from 'node:fs';
import { UsageError } from '../../engine/errors.ts';
import { openRegular } from '../../engine/regular-file.ts';
import type { ProfileReport } from '../../api/reports/profile.ts';
import { checkWholeFile, writeWholeFile } from '../../api/output/whole-file.ts';
import { GENERATOR } from './generator.ts';
import type { Report } from './section.ts';

/** Bytes that are read to find the mark. */
const HEAD = 256;

/**
 * Checks before the work that the report can be written. Another file than an earlier report is never
 * replaced.
 */
export async function checkReport(path: string): Promise<void> {
  if (!/\.html?$/i.test(path))
    throw new UsageError(`--report takes the name of an HTML file, got ${JSON.stringify(path)}`, {
      advice: 'End it in .html',
    });
  await checkWholeFile(path, isReport(path));
}

function isReport(path: string): boolean {
  try {
    const { fd } = openRegular(path);
    const head = Buffer.alloc(HEAD);
    readSync(fd, head);
    closeSync(fd);
    return head.toString('latin1').includes(GENERATOR);
  } catch {
    // What is no regular file, or may not be read, is refused by the check of outputs.
    return false;
  }
}

/**
 * Writes the page, with the parts that every page has: the time, the machine, the command. Whole or not at
 * all.
 */
export async function writeReport(
  path: string,
  { title, lead, warnings, sections, adapter }: Report,
  profile: ProfileReport,
  argv: readonly string[],
): Promise<void> {
  const [{ pageOf }, { timeSection }, { environmentSection }] = await Promise.all([
    import('./page.ts'),
    import('./sections/time.ts'),
    import('./sections/environment.ts'),
  ]);
  const text = pageOf({
    title,
    lead,
    warnings,
    sections: [
      ...sections,
      ...(profile.phases.length > 1 ? [timeSection(profile)] : []),
      environmentSection(argv, adapter ?? null),
    ],
  });
  await writeWholeFile(path, text, await isReport(path));
}
