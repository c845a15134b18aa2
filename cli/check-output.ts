import { mkdtemp, rmdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorCode, fileProblem } from '../connectors/file-problem.ts';
import { DataError, type FactorFlowError } from '../engine/errors.ts';

/**
 * Tries whether something can be written at `target`, before any long work: makes an empty folder in the nearest folder
 * above it that exists, and removes it again. Throws DataError with the place and advice, CapacityError for a full disk.
 */
export async function checkWritable(target: string): Promise<void> {
  const parent = await nearestFolder(dirname(resolve(target)), target);
  try {
    await rmdir(await mkdtemp(join(parent, '.factorflow-')));
  } catch (error) {
    const problem = fileProblem(error, 'write', parent) as FactorFlowError | Error;
    if ('exitCode' in problem && problem.exitCode === 4) throw problem;
    const reason = errorCode(error) === 'EROFS' ? 'the file system is read-only' : errorCode(error) === 'EACCES' || errorCode(error) === 'EPERM' ? 'permission denied' : problem.message;
    throw new DataError(`cannot write the output: ${reason}`, { phase: 'write', file: parent, advice: "Choose another output, or check the folder's permissions", cause: error });
  }
}

async function nearestFolder(path: string, target: string): Promise<string> {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      if ((await stat(folder)).isDirectory()) return folder;
    } catch (error) {
      if (errorCode(error) === 'ENOENT') continue;
      if (errorCode(error) !== 'ENOTDIR') throw fileProblem(error, 'write', folder);
      continue;
    }
    throw new DataError(`cannot write the output: ${folder} is a file, not a folder`, { phase: 'write', file: target, advice: 'Choose another output' });
  }
}
