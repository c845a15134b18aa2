import { mkdir, rmdir, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { errorCode, fileProblem } from '../../connectors/files/file-problem.ts';
import {
  forgetTemporary,
  recoverOutput,
  registerTemporary,
  siblingName,
} from '../../connectors/output/temporaries.ts';
import { CapacityError, DataError } from '../../engine/errors.ts';
import { refuseLossyName } from '../../connectors/files/lossy-name.ts';

/**
 * Checks before any long work that `target` can be written: creates an empty folder in the nearest existing
 * parent folder and removes it, and removes such folders left by killed processes. Throws DataError with the
 * place and advice, CapacityError for a full disk.
 */
export async function checkWritable(target: string): Promise<void> {
  refuseLossyName(target, 'write');
  const parent = await nearestFolder(dirname(resolve(target)), target);
  const place = join(parent, relative(parent, resolve(target)).split(sep)[0]);
  try {
    await recoverOutput(place);
    const temporary = siblingName(place, 'tmp');
    registerTemporary({ temporary });
    await mkdir(temporary);
    await rmdir(temporary);
    forgetTemporary(temporary);
  } catch (error) {
    const problem = fileProblem(error, 'write', parent);
    if (problem instanceof CapacityError)
      throw new CapacityError(problem.summary, { ...problem.details, file: target });
    // A folder that exists but fails with ENOENT is a special one (/proc). The system's own message would be
    // misleading.
    const reason =
      problem instanceof DataError && errorCode(error) !== 'ENOENT'
        ? problem.summary
        : `${parent} takes no new folders`;
    throw new DataError(`cannot write the output: ${reason}`, {
      phase: 'write',
      file: target,
      advice: "Choose another output, or check the folder's permissions",
      cause: error,
    });
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
    throw new DataError(`cannot write the output: ${folder} is a file, not a folder`, {
      phase: 'write',
      file: target,
      advice: 'Choose another output',
    });
  }
}
