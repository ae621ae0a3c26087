-- What only the code has seen to so far. NOT VALID: nobody waits while old rows are read; `petard verify` reads them.

-- A NaN in an explanation would be published as JSON that no parser takes.
ALTER TABLE petard.change ADD CONSTRAINT change_explanation_is_finite CHECK (
    (volatility_before IS NULL OR volatility_before BETWEEN 0 AND 1e300)
    AND (volatility_after IS NULL OR volatility_after BETWEEN 0 AND 1e300)
    AND (expected IS NULL OR expected BETWEEN -1e300 AND 1e300)
    AND (actual IS NULL OR actual BETWEEN -1e300 AND 1e300)
    AND (rd_aged IS NULL OR rd_aged BETWEEN 0 AND 1e300)
) NOT VALID;

-- Of a body beyond 64 KiB only the start is kept, with the digest of all of it.
ALTER TABLE petard.dead_letter ADD CONSTRAINT dead_letter_digest_is_that_of_the_body CHECK (
    octet_length(body) <= 65536 AND (octet_length(body) = 65536 OR digest = sha256(body))
) NOT VALID;
