r"""Energy, mobility and velocities of tokens on the sphere under multi-head attention.

Tokens x_i, i = 1…n, have norm 1 in R^d; heads are matrices D_h. With P = I − xxᵀ and means over
heads

    φ_h(x) = (1/n) Σ_j exp⟨x, D_h x_j⟩,   ∇φ_h(x) = (1/n) Σ_j exp⟨x, D_h x_j⟩ D_h x_j,
    g = P mean_h ∇φ_h,   w = P mean_h ∇φ_h/φ_h,   b̂ = 1 / mean_h(1/φ_h),   φ̄ = mean_h φ_h,
    E = ½ mean_h mean_i φ_h(x_i).

For symmetric heads g is n times the gradient of E with respect to a token. There are four flows:

=============  ===========  =====================================  =================
name           velocity     what it is                             weight in ∫…|v|²
=============  ===========  =====================================  =================
``attention``  −w           softmax attention, head by head        b̂
``gradient``   −g/b̂         gradient flow of E with the weight b̂   b̂
``plain``      −g           gradient flow of E in W₂               1
``joint``      −g/φ̄         one softmax over all (head, token)     φ̄
=============  ===========  =====================================  =================

With one head, or equal heads, the first two and the last agree. Everything is computed from
logarithms, so that heads of any size are welcome. Tensors (…, n, d) and (…, H, d, d) in, tensors
out; leading axes broadcast, dtype and device are kept, gradients pass through.

Source: A. Massucco et al., arXiv:2605.18870; what differs from it is derived in the chapter *flow*.
"""

import math

import torch

from rederive import flow_logarithms, validation

FLOWS = ("attention", "gradient", "plain", "joint")


def energy(tokens, heads):
    r"""Interaction energy of the tokens.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Matrices of the heads, not necessarily symmetric.

    Returns
    -------
    torch.Tensor, shape (…)
        :math:`E = \frac1{2Hn^2}\sum_{h,i,j} e^{\langle x_i, D_h x_j\rangle}`; inf where it exceeds
        the dtype.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, an entry is not finite, a token is off the sphere,
        or there is no head.
    """
    return log_energy(tokens, heads).exp()


def log_energy(tokens, heads):
    """Logarithm of the interaction energy, finite for heads of any size.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Matrices of the heads.

    Returns
    -------
    torch.Tensor, shape (…)
        log E.

    Raises
    ------
    ValueError
        As :func:`energy`.
    """
    logs, _ = flow_logarithms._potentials(*check_tokens_and_heads(tokens, heads))
    return logs.flatten(-2).logsumexp(-1) - math.log(2 * logs.shape[-1] * logs.shape[-2])


def effective_mobility(tokens, heads):
    r"""Harmonic mean over heads of φ_h at every token.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Matrices of the heads.

    Returns
    -------
    torch.Tensor, shape (…, n)
        :math:`\hat b(x_i) = \bigl(\frac1H\sum_h \varphi_h(x_i)^{-1}\bigr)^{-1}`; inf where it
        exceeds the dtype.

    Raises
    ------
    ValueError
        As :func:`energy`.

    Notes
    -----
    :math:`\min_h\varphi_h \le \hat b \le H \min_h\varphi_h`: the least φ_h decides.
    """
    return log_effective_mobility(tokens, heads).exp()


def log_effective_mobility(tokens, heads):
    """Logarithm of the effective mobility, finite for heads of any size.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Matrices of the heads.

    Returns
    -------
    torch.Tensor, shape (…, n)
        log b̂ at every token.

    Raises
    ------
    ValueError
        As :func:`energy`.
    """
    return flow_logarithms._log_mobility(
        flow_logarithms._potentials(*check_tokens_and_heads(tokens, heads))[0]
    )


def log_potentials(tokens, heads):
    """Logarithms of the potentials φ_h at every token.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Matrices of the heads.

    Returns
    -------
    torch.Tensor, shape (…, H, n)
        log φ_h(x_i).

    Raises
    ------
    ValueError
        As :func:`energy`.
    """
    return flow_logarithms._potentials(*check_tokens_and_heads(tokens, heads))[0]


def velocity(tokens, heads, flow="attention"):
    r"""Velocities of the tokens.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Matrices of the heads. "gradient" and "plain" need symmetric ones: for others g is not the
        gradient of the energy. "attention" and "joint" take any, as attention with the score
        matrix D and the value matrix D.
    flow : {"attention", "gradient", "plain", "joint"}
        Which flow; see the table of this module.

    Returns
    -------
    torch.Tensor, shape (…, n, d)
        dx/dt, tangent to the sphere. For "attention" and "joint" it is never longer than the
        largest norm of a head. The others may exceed the dtype, and are then ±inf, never NaN.

    Raises
    ------
    ValueError
        As :func:`energy`, or if the flow is unknown or needs symmetric heads.
    """
    tokens, heads = check_tokens_and_heads(tokens, heads)
    check_flow(flow, heads)
    return flow_logarithms._velocity(*flow_logarithms._potentials(tokens, heads), flow)


def energy_gradient(tokens, heads):
    r"""Gradient of the energy with respect to each token, times n.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Symmetric matrices.

    Returns
    -------
    torch.Tensor, shape (…, n, d)
        :math:`g(x_i) = P \frac1H\sum_h\nabla\varphi_h(x_i) = n\,\nabla_{x_i}E`, a tangent
        vector; ±inf where it exceeds the dtype.

    Raises
    ------
    ValueError
        As :func:`energy`, or if a head is not symmetric.
    """
    return -velocity(tokens, heads, "plain")


def mobility_covariance(tokens, heads):
    r"""Covariance over heads of 1/φ_h and ∇φ_h, by which attention misses the gradient flow.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Symmetric matrices.

    Returns
    -------
    torch.Tensor, shape (…, n, d)
        :math:`\mathrm{Cov}_h(1/\varphi_h, P\nabla\varphi_h) = w - g/\hat b` at every
        token; ±inf where it exceeds the dtype.

    Raises
    ------
    ValueError
        As :func:`energy`, or if a head is not symmetric.
    """
    tokens, heads = check_tokens_and_heads(tokens, heads)
    check_flow("gradient", heads)
    logs, pulls = flow_logarithms._potentials(tokens, heads)
    return flow_logarithms._velocity(logs, pulls, "gradient") - flow_logarithms._velocity(
        logs, pulls, "attention"
    )


def dissipation(tokens, heads):
    r"""Rate at which the energy falls along attention while the heads stand still.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Symmetric matrices.

    Returns
    -------
    torch.Tensor, shape (…)
        :math:`\mathcal D = \frac1n\sum_i\langle g(x_i), w(x_i)\rangle = -dE/dt`, of any
        sign; ±inf where it exceeds the dtype.

    Raises
    ------
    ValueError
        As :func:`energy`, or if a head is not symmetric.
    """
    tokens, heads = check_tokens_and_heads(tokens, heads)
    check_flow("gradient", validation.squares_fit(heads, "heads"))
    logs, pulls = flow_logarithms._potentials(tokens, heads)
    top, share = flow_logarithms._mean_gradient(logs, pulls)
    along = (share * flow_logarithms._velocity(logs, pulls, "attention")).sum(-1)
    return -flow_logarithms._weighted_mean(top, along)


def claimed_dissipation(tokens, heads):
    r"""Rate at which the energy would fall if attention were a gradient flow.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Matrices of the heads.

    Returns
    -------
    torch.Tensor, shape (…)
        :math:`\mathcal G^2 = \frac1n\sum_i \hat b(x_i)\,|w(x_i)|^2`; inf where it exceeds
        the dtype.

    Raises
    ------
    ValueError
        As :func:`energy`.

    Notes
    -----
    The public code to arXiv:2605.18870 calls it G2.
    """
    tokens, heads = check_tokens_and_heads(tokens, heads)
    logs, pulls = flow_logarithms._potentials(tokens, validation.squares_fit(heads, "heads"))
    squares = flow_logarithms._velocity(logs, pulls, "attention").square().sum(-1)
    return flow_logarithms._weighted_mean(flow_logarithms._log_mobility(logs), squares)


def squared_slope(tokens, heads):
    r"""Squared slope of the energy in the metric with weight b̂.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Points of norm 1.
    heads : torch.Tensor or array_like, shape (…, H, d, d)
        Symmetric matrices.

    Returns
    -------
    torch.Tensor, shape (…)
        :math:`S^2 = \frac1n\sum_i |g(x_i)|^2/\hat b(x_i)`; inf where it exceeds the
        dtype.

    Raises
    ------
    ValueError
        As :func:`energy`, or if a head is not symmetric.
    """
    tokens, heads = check_tokens_and_heads(tokens, heads)
    check_flow("gradient", validation.squares_fit(heads, "heads"))
    logs, pulls = flow_logarithms._potentials(tokens, heads)
    top, share = flow_logarithms._mean_gradient(logs, pulls)
    return flow_logarithms._weighted_mean(
        2 * top - flow_logarithms._log_mobility(logs), share.square().sum(-1)
    )


def check_tokens_and_heads(tokens, heads, name="heads"):
    """Check tokens (…, n, d) on the sphere and heads (…, H, d, d), and return them."""
    tokens = validation.tensor(tokens, "tokens", shape=(..., "n", "d"))
    dim = tokens.shape[-1]
    heads = validation.tensor(heads, name, shape=(..., "H", dim, dim), like=tokens)
    try:
        torch.broadcast_shapes(tokens.shape[:-2], heads.shape[:-3])
    except RuntimeError:
        got = f"{tuple(heads.shape[:-3])}"
        validation.fail(name, f"axes that broadcast with {tuple(tokens.shape[:-2])}", got)
    validation.on_sphere(tokens.detach(), "tokens")
    return tokens, heads


def check_flow(flow, heads, name="heads"):
    """Check the name of a flow, and that the heads are symmetric where it needs that."""
    if validation.one_of(flow, "flow", FLOWS) in ("gradient", "plain"):
        try:
            validation.symmetric(heads.detach(), name)
        except ValueError as error:
            reason = "the formula is the gradient of the energy for symmetric heads only"
            raise ValueError(f"{error}; {reason}") from error
