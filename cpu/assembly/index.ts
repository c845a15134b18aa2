/** The exported kernels. They keep no state: all addresses are arguments, so that all threads can share one memory. */
export { addNormalEquations, addDiagonal } from './normal-equations';
export { solveCholesky } from './solve/cholesky';
export { solveDual } from './solve/dual';
export { solveFormed, solveMatrixFree } from './solve/conjugate-gradient';
export { accumulateRow, solveAccumulated, updateRows } from './update';
export { solveNonnegative } from './solve/nonnegative';
export { solveAccumulatedNonnegative, updateRowsNonnegative } from './update-nonnegative';
export { addErrors, addWeightedNorms } from './errors';
export { addImplicitErrors, addShiftedNorms } from './implicit/errors';
export { gramRows } from './implicit/gram';
export { accumulateImplicit, solveAccumulatedImplicit, updateRowsImplicit } from './implicit/update-implicit';
export { weighRatings } from './implicit/weights';
export { predictPairs } from './predict';
export { beginTopN, offerColumns, finishTopN } from './top-n';
export { searchChosen, searchColumns } from './search';
export { packRow, scoreListed, beginList, enterListed, finishList, countColumns, discountListed, shortenLists } from './rank-listed';
export { stepRatings, stepRows } from './sgd';
export { adaptRatings, adaptRows } from './sgd-adaptive';
